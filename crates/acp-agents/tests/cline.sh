#!/bin/sh
# Stands in for Cline: each turn has an answer of 100 tokens more than the last one, which is in its record alone.
while IFS= read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"method":"session/prompt"'*)
        folder=$CLINE_DIR/data/sessions/s1
        mkdir -p "$folder"
        turn=$(($(cat "$folder/turns" 2>/dev/null || echo 0) + 1))
        echo "$turn" >"$folder/turns"
        printf '%s{\n"id": "msg_%s",\n"modelInfo": {"id": "gpt-4o"},\n"metrics": {"inputTokens": %s00, "outputTokens": 5}\n}\n' \
            "$([ "$turn" = 1 ] || echo ,)" "$turn" "$turn" >>"$folder/items"
        # As the CLI does it, the record is written before the answer.
        {
            echo '{"version": 1, "messages": ['
            cat "$folder/items"
            echo ']}'
        } >"$folder/s1.messages.json"
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello."}}}}\n'
        result='{"stopReason":"end_turn"}'
        ;;
    *) result='{"sessionId":"s1"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
