// concourse-names FILE: writes the file that the plugin ConcourseNames adds to a module.

import Glibc

guard CommandLine.arguments.count == 2 else {
  errno = EINVAL
  perror("concourse-names FILE")
  exit(2)
}
let path = CommandLine.arguments[1]
guard let file = fopen(path, "w") else {
  perror(path)
  exit(1)
}
let isComplete = fputs(NamesFile.text, file) >= 0
guard fclose(file) == 0, isComplete else {
  perror(path)
  exit(1)
}
