import GuideKit

runProgram(Array(CommandLine.arguments.dropFirst()))
