import EchoKit

runProgram()
