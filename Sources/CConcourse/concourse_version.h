// The version of Concourse. Only this file has it; CHANGELOG.md says what is in each version.
#define CONCOURSE_VERSION "1.0.0"
