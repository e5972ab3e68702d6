import GooglyPuffKit

runProgram()
