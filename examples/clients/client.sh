#!/bin/bash
# sockpqd from bash alone: exactly-once put and a worker, through any failover. Bodies must have no NUL bytes.
#
#   client.sh HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
#   client.sh HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
[[ $# -ge 3 && ( $2 == put || $2 == work && ${4-} =~ ^[0-9]+$ ) ]] || { echo "usage: client.sh SERVERS put QUEUE | SERVERS work QUEUE COUNT" >&2; exit 64; }
set -u
export LC_ALL=C                 # lengths are in bytes
IFS=, read -r -a servers <<< "$1"
patience=10                     # seconds; no answer takes longer, as GETB is told to wait for 5
session="" number=0 connected=""

connect() {                     # to the leader, and to our session; tries until it works
    local server id best address answer begun=$SECONDS said=""
    while true; do
        best="" address=""
        for server in "${servers[@]}"; do       # the leader has the smallest number
            { exec 3<> "/dev/tcp/${server%:*}/${server##*:}"; } 2> /dev/null || continue
            printf 'INTERCONNECT\r\n' >&3
            read -r -t 2 -u 3 _ _ id && id=${id%$'\r'} && [[ $id =~ ^[0-9]+$ ]] \
                && [[ -z $best || $id -lt $best ]] && best=$id address=$server
            exec 3>&-
        done
        if [[ -n $address ]] && { exec 3<> "/dev/tcp/${address%:*}/${address##*:}"; } 2> /dev/null; then
            printf 'SESSION%s\r\n' "${session:+ $session}" >&3
            if read -r -t "$patience" -u 3 answer; then
                case $answer in
                    "200 OK SESSION "*) read -r _ _ _ session _ <<< "$answer"; connected=yes; return ;;
                    404*) echo "the session is lost: nobody knows what was executed" >&2; exit 1 ;;
                esac
            fi
            exec 3>&-
        fi
        if [[ -z $address ]]; then
            [[ $said ]] || echo "no server answers at ${servers[*]}" >&2
            said=yes
            [[ $((SECONDS - begun)) -lt $patience ]] || exit 1
        fi
        sleep 0.1
    done
}

call() {                        # LINE [DATA]: sets answer, and body for a job; the same number until there is an answer
    number=$((number + 1))
    while true; do
        [[ $connected ]] || connect
        if { printf 'REQ %d %s\r\n%s' "$number" "$1" "${2-}" >&3; } 2> /dev/null && read -r -t "$patience" -u 3 answer; then
            answer=${answer%$'\r'} body=""
            case $answer in
                500*|503\ Busy|504*) ;;                                 # not executed, or nobody knows: again
                200*) [[ $1 != GETB* ]] && return
                      local length; read -r _ _ _ _ _ length _ <<< "$answer"
                      [[ $length == 0 ]] && return
                      IFS= read -r -t "$patience" -N "$length" -u 3 body && return ;;
                *) return ;;
            esac
        fi
        exec 3>&-; connected=""
        sleep 0.1
    done
}

trap '' PIPE                    # a connection that is gone is an error of printf
case $2 in
    put)
        while IFS= read -r text; do
            call "PUT $3 0 ${#text}" "$text"
            [[ $answer == 200* ]] || { echo "$answer" >&2; exit 1; }
        done ;;
    work)
        count=$4
        while [[ $count -gt 0 ]]; do
            call "GETB $3 EXPIRE 60 THEN LATER WITHIN 5"
            [[ $answer == 200* ]] || continue                           # 404: none for 5 seconds
            read -r _ _ _ id _ <<< "$answer"; text=$body
            call "DONE $id"
            [[ $answer == 200* ]] && printf '%s\n' "$text" && count=$((count - 1))
        done ;;
esac
