<?php
// sockpqd from PHP alone: exactly-once put and a worker, through any failover.
//
//   php client.php HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
//   php client.php HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
declare(strict_types=1);

const PATIENCE = 10;    // seconds; no answer takes longer, as GETB is told to wait for 5

final class Queue
{
    /** @var resource|null */
    private $socket = null;
    private string $session = '';
    private int $number = 0;

    /** @param string[] $servers */
    public function __construct(private array $servers)
    {
    }

    /** Executes a command exactly once: under the same number until there is an answer. Returns its words and a job's body. */
    public function call(string $line, string $data = ''): array
    {
        $this->number++;
        while (true) {
            if ($this->socket === null) {
                $this->connect();
            }
            $answer = $this->ask("REQ {$this->number} $line\r\n$data");
            $words = explode(' ', $answer);
            if ($answer !== '' && $answer !== '503 Busy' && !in_array($words[0], ['500', '504'], true)) {
                if ($words[0] !== '200' || !str_starts_with($line, 'GETB')) {
                    return [$words, ''];
                }
                $body = $this->block((int) $words[5]);
                if ($body !== null) {
                    return [$words, $body];
                }
            }
            $this->socket = null;       // not executed, or nobody knows: again
            usleep(100_000);
        }
    }

    /** To the leader, and to our session; tries until it works. */
    private function connect(): void
    {
        for ($begun = time(), $said = false; true; usleep(100_000)) {
            $best = PHP_INT_MAX;
            $leader = null;
            foreach ($this->servers as $server) {       // the leader has the smallest number
                $words = $this->open($server) ? explode(' ', $this->ask("INTERCONNECT\r\n")) : [];
                if (($words[0] ?? '') === '200' && (int) $words[2] < $best) {
                    [$best, $leader] = [(int) $words[2], $server];
                }
            }
            if ($leader !== null && $this->open($leader)) {
                $words = explode(' ', $this->ask(rtrim("SESSION {$this->session}") . "\r\n"));
                if ($words[0] === '200') {
                    $this->session = $words[3];
                    return;
                }
                if ($words[0] === '404') {
                    quit('the session is lost: nobody knows what was executed');
                }
            } elseif ($leader === null) {
                $said = $said || fwrite(STDERR, 'no server answers at ' . implode(',', $this->servers) . "\n");
                time() - $begun < PATIENCE || exit(1);
            }
        }
    }

    private function open(string $server): bool
    {
        $socket = @stream_socket_client("tcp://$server", $code, $message, 2);
        $this->socket = $socket === false ? null : $socket;
        if ($this->socket !== null) {
            stream_set_timeout($this->socket, PATIENCE);
        }
        return $this->socket !== null;
    }

    /** Sends, and returns the first line of the answer; '' when the connection is closed or silent. */
    private function ask(string $text): string
    {
        for ($rest = $text; $rest !== ''; $rest = substr($rest, $sent)) {
            $sent = @fwrite($this->socket, $rest);
            if ($sent === false || $sent === 0) {
                return '';
            }
        }
        $answer = fgets($this->socket);
        return is_string($answer) && str_ends_with($answer, "\n") ? rtrim($answer, "\r\n") : '';
    }

    private function block(int $length): ?string
    {
        $body = $length === 0 ? '' : stream_get_contents($this->socket, $length);
        return is_string($body) && strlen($body) === $length ? $body : null;
    }
}

function quit(string $why, int $code = 1): never
{
    fwrite(STDERR, "$why\n");
    exit($code);
}

[, $servers, $what, $name, $count] = $argv + array_fill(0, 5, null);
if ($name === null || ($what !== 'put' && ($what !== 'work' || !preg_match('/^\d+$/D', $count ?? '')))) {
    quit('usage: client.php SERVERS put QUEUE | SERVERS work QUEUE COUNT', 64);
}
$queue = new Queue(explode(',', $servers));
if ($what === 'put') {
    while (($text = fgets(STDIN)) !== false) {
        $text = rtrim($text, "\n");
        [$words] = $queue->call("PUT $name 0 " . strlen($text), $text);
        $words[0] === '200' || quit(implode(' ', $words));
    }
} else {
    for ($count = (int) $count; $count > 0;) {
        [$words, $body] = $queue->call("GETB $name EXPIRE 60 THEN LATER WITHIN 5");
        if ($words[0] === '200' && $queue->call("DONE {$words[3]}")[0][0] === '200') {     // 404: none for 5 seconds
            echo "$body\n";
            $count--;
        }
    }
}
