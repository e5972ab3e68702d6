import DupesKit

runProgram()
