import TailKit

runProgram()
