/* The CLI's commands, one file each (cmd_NAME.c). main.c picks one by its name. */
#ifndef GT_COMMANDS_H
#define GT_COMMANDS_H

/* Each gets argv with argv[0] = its own name, prints to stdout/stderr, returns the exit status:
 * 0 done, 1 no arguments where some are needed (help was printed), 2 bad input or failure; `run`
 * returns the program's. */
int gt_cmd_run(int argc, char **argv);
int gt_cmd_report(int argc, char **argv);
int gt_cmd_finish(int argc, char **argv);
int gt_cmd_recover(int argc, char **argv);
int gt_cmd_list(int argc, char **argv);
int gt_cmd_doctor(int argc, char **argv);

#endif
