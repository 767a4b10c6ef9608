import { runProgram } from "tapedeck/program";

// A one-file executable is a script, and a script can't wait at its top level.
void runProgram();
