#include "main/commands.h"

int main(int argc, char** argv) { return muster::run_command(argc, argv); }
