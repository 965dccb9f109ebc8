# SPDX-License-Identifier: Apache-2.0
"""Check torture -- as many checks under the shim as without it, and no word that changed

An allocator that has seen many streams for long may never look for a single one
again, so the rounds of a mode are those of several processes. --rounds says how
many rounds, --processes among how many; by default it is what the time allows.
"""

import shimrun
from check_rows import speeds, trouble, unplanted

MODES = ('r1', 'r2', 'mixed')
SLOWEST = 1000  # rounds in a second that any GPU does, bare


def add_options(parser):
    parser.add_argument('--rounds', type=int,
                        help='rounds of each torture mode, of all its processes together')
    parser.add_argument('--processes', type=int, help='processes of each torture mode')


def share(options):
    """(processes, rounds of each)."""
    processes = options.processes or (4 if options.quick else 20)
    rounds = options.rounds or processes * (2500 if options.quick else 5000)
    return processes, max(1, -(-rounds // processes))


def done(run):
    """Rounds that a process says it has done."""
    words = run.out.split()
    return int(words[1]) if words[:1] == ['rounds'] else 0


def rows(name, check):
    processes, rounds = share(check.options)
    program = check.gpu_program('torture')
    for number, mode in enumerate(MODES):
        to_come = len(MODES) - number - 1
        one_mode(f'{name} {mode}', check, [program, '--mode', mode], processes, rounds,
                 check.left() * to_come / (to_come + 1))


def one_mode(name, check, command, processes, rounds, kept):
    """@kept: seconds to leave for the other modes."""
    failures, allocations, total, seconds = [], 0, 0, [0, 0]
    seed, slowest = 0, 0
    # A process more is begun only if it can end as the slowest one did.
    while seed < processes and check.left() - kept > 5 + 1.5 * slowest:
        seed += 1
        one = command + ['--rounds', str(rounds), '--seed', str(seed)]
        limit = 60 + rounds / SLOWEST
        bare, run = check.run(one, limit=limit), check.run(one, 'pool', limit=limit)
        wrong = trouble(bare, 'bare') + trouble(run, 'shim') + unplanted(run.report)
        if ' mismatches 0 ' not in run.out or run.out != bare.out:
            wrong.append(f'bare: {bare.out.strip()} shim: {run.out.strip()}')
        failures += [f'seed {seed}: {text}' for text in wrong]
        allocations += sum(shimrun.made(run.report).values())
        total += done(run)
        seconds = [seconds[0] + bare.seconds, seconds[1] + run.seconds]
        slowest = max(slowest, bare.seconds + run.seconds)
    if not seed:
        check.row(name, '', None, 'no time left')
        return
    remarks = f'rounds {total} mismatches 0'
    if seed < processes:
        remarks += f'; no time left for {processes - seed} of {processes} processes'
    check.row(name, f'{seed} seeds', failures, remarks, allocations=str(allocations),
              **speeds(total / seconds[0], total / seconds[1]))
