#!/bin/sh
# Stands in for Kimi Code: its model fails in each turn, which only its record has.
record=$KIMI_CODE_HOME/sessions/wd/session_$$/agents/main
mkdir -p "$record"
while IFS= read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":1}' ;;
    *'"method":"session/new"'*) result="{\"sessionId\":\"session_$$\"}" ;;
    *) result='{"stopReason":"end_turn"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    case $line in
    *'"method":"session/prompt"'*)
        turn=$((turn + 1))
        # The first line of the record is written after the answer, as the CLI does it.
        {
            printf '{"type":"usage.record","agentId":"main","usage":{"inputOther":%s,"output":5}}\n' "$turn"
            printf '{"type":"turn.ended","agentId":"main","reason":"failed","error":{"code":"provider.rate_limit","message":"429 no %s","details":{"statusCode":429}}}\n' "$turn"
        } >>"$record/wire.jsonl"
        ;;
    esac
done
