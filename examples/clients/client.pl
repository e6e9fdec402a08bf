#!/usr/bin/perl
# sockpqd from Perl alone: exactly-once put and a worker, through any failover.
#
#   client.pl HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
#   client.pl HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
use strict;
use warnings;
use IO::Socket::INET;
use IO::Select;

my ($servers, $what, $queue, $count) = @ARGV;
unless (@ARGV >= 3 && ($what eq 'put' || $what eq 'work' && ($count // '') =~ /^\d+$/a)) {
    print STDERR "usage: client.pl SERVERS put QUEUE | SERVERS work QUEUE COUNT\n";
    exit 64;
}
my @servers  = split /,/, $servers;
my $patience = 10;      # seconds; no answer takes longer, as GETB is told to wait for 5
my ($socket, $buffer, $session, $number) = (undef, '', undef, 0);
$SIG{PIPE} = 'IGNORE';
$| = 1;

sub open_to {           # a new connection, or nothing
    my ($address) = @_;
    close $socket if $socket;
    $buffer = '';
    $socket = IO::Socket::INET->new(PeerAddr => $address, Timeout => 2);
    return $socket;
}

sub more {              # reads; false when the connection is closed, or silent for too long
    my ($seconds) = @_;
    return unless IO::Select->new($socket)->can_read($seconds);
    return sysread $socket, $buffer, 65536, length $buffer;
}

sub line_of {           # a line without its end, or nothing
    my ($seconds) = @_;
    while ($buffer !~ /\n/) { more($seconds) or return }
    $buffer =~ s/^(.*?)\r?\n//;
    return $1;
}

sub block {             # so many bytes, or nothing
    my ($length) = @_;
    while (length $buffer < $length) { more($patience) or return }
    return substr $buffer, 0, $length, '';
}

sub ask {               # sends, and returns the first line of the answer
    my ($text, $seconds) = @_;
    my $sent = 0;
    while ($sent < length $text) { $sent += syswrite($socket, $text, length($text) - $sent, $sent) || return }
    return line_of($seconds);
}

sub connect_to_leader { # and to our session; tries until it works
    my ($begun, $said) = (time, 0);
    while (1) {
        my ($best, $leader);
        for my $server (@servers) {     # the leader has the smallest number
            open_to($server) or next;
            my $answer = ask("INTERCONNECT\r\n", 2) // '';
            ($best, $leader) = ($1, $server) if $answer =~ /^200 OK (\d+)/ && (!defined $best || $1 < $best);
        }
        if ($leader && open_to($leader)) {
            my $answer = ask('SESSION' . ($session ? " $session" : '') . "\r\n", $patience) // '';
            if ($answer =~ /^200 OK SESSION (\S+)/) { $session = $1; return }
            die "the session is lost: nobody knows what was executed\n" if $answer =~ /^404/;
        }
        $socket = undef;
        if (!$leader) {
            print STDERR "no server answers at @servers\n" unless $said++;
            exit 1 if time - $begun >= $patience;
        }
        select undef, undef, undef, 0.1;
    }
}

sub call {              # the answer's words, and the body of a job; the same number until there is an answer
    my ($line, $data) = @_;
    $number++;
    while (1) {
        connect_to_leader() unless $socket;
        my $answer = ask("REQ $number $line\r\n$data", $patience);
        if (defined $answer && $answer !~ /^(500|503 Busy|504)/) {
            my @words = split / /, $answer;
            return ($answer) if $words[0] ne '200' || $line !~ /^GETB/;
            my $body = block($words[5]);
            return ($answer, $words[3], $body) if defined $body;
        }
        $socket = undef;                # not executed, or nobody knows: again
        select undef, undef, undef, 0.1;
    }
}

if ($what eq 'put') {
    while (my $text = <STDIN>) {
        chomp $text;
        my ($answer) = call("PUT $queue 0 " . length $text, $text);
        die "$answer\n" if $answer !~ /^200/;
    }
} else {
    while ($count > 0) {
        my ($answer, $id, $body) = call("GETB $queue EXPIRE 60 THEN LATER WITHIN 5", '');
        next if $answer !~ /^200/;      # 404: none for 5 seconds
        ($answer) = call("DONE $id", '');
        if ($answer =~ /^200/) { print "$body\n"; $count-- }
    }
}
