// A header that Swift's Glibc module leaves out.
#include <sys/xattr.h>
