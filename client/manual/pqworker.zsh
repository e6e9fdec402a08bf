#compdef pqworker
_arguments \
    '--config[options in TOML, called as here; the command line goes first]:FILE:_files' \
    '--servers[servers of the cluster, instead of the apps and the configured ones]:HOST\:PORT,..:' \
    '--queues[take jobs from these queues only; without it from all that the app has]:A,B:' \
    '--concurrency[children; by default as many as there are processors]:N:' \
    '--autoscale[as many children as there is work for, in these bounds; overrides -c]:MOST,LEAST:' \
    '--autoscale-keepalive[end no child for so long after the last growth (30)]:S:' \
    '--pool[what children are\: processes (default), threads or asyncio]:KIND:(processes threads asyncio)' \
    '--strategy[fair (default)\: jobs go to idle children; fast, or fcfs\: spread to all]:WHICH:(fair fast)' \
    '--prefetch[jobs taken at once for each idle child (4); 0\: all that there are]:N:' \
    '--by[how the server chooses among queues\: random, priority, fair, weight, rr, order, sorted, oldest]:POLICY:(random priority fair weight rr order sorted oldest)' \
    '--max-tasks-per-child[replace a child after this many tasks]:N:' \
    '--max-memory-per-child[replace a child that has had more memory\: 200M]:SIZE:' \
    '--memory-share[do not grow while so much of all memory is used\: 60%]:PERCENT:' \
    '--start-limit[replace a child that is not ready after this long (60)]:S:' \
    '--time-limit[kill a child that works on one job for longer]:S:' \
    '--soft-time-limit[raise SoftTimeLimit in a task after this long]:S:' \
    '--name[the workers name in `pqctl worker list`; by default host and process]:NAME:' \
    '--log-format[json, text, or auto (default)\: text on a terminal]:FORMAT:(auto json text)' \
    '--verbose[a line in the log for each job that is done]' \
    '--check[only show what it would do, and whether the cluster answers]' \
    '--metrics[serve Prometheus metrics there]:HOST\:PORT:' \
    '--progress[show what is going on, on a terminal]' \
    '--exec[run a program for each job\: its body on standard input; %k key, %q queue, %i id]:LINE:' \
    '--expire[for --exec\: the lease (60)]:S:' \
    '--tries[for --exec\: how often a job is tried (5)]:N:' \
    '--backoff[for --exec\: the first pause after a failure and the longest (2,600)]:S,S:' \
    '::MODULE\:APP:'
