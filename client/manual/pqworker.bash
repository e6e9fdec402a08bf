# Completes the arguments of pqworker.
_pqworker() {
    local word=${COMP_WORDS[COMP_CWORD]}
    case ${COMP_WORDS[COMP_CWORD-1]} in
        --pool) COMPREPLY=($(compgen -W "processes threads asyncio" -- "$word")); return ;;
        --strategy) COMPREPLY=($(compgen -W "fair fast" -- "$word")); return ;;
        --by) COMPREPLY=($(compgen -W "random priority fair weight rr order sorted oldest" -- "$word")); return ;;
        --log-format) COMPREPLY=($(compgen -W "auto json text" -- "$word")); return ;;
        --config) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    COMPREPLY=($(compgen -W "-c --config --servers --queues --concurrency --autoscale --autoscale-keepalive --pool --strategy --prefetch --by --max-tasks-per-child --max-memory-per-child --memory-share --start-limit --time-limit --soft-time-limit --name --log-format --verbose --check --metrics --progress --exec --expire --tries --backoff --help --version" -- "$word"))
}
complete -o default -F _pqworker pqworker
