# An agent of the Agent Client Protocol, of a few lines.
session=s-$$
say() {
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$session" "$1"
}
text() {
    say "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"
}
answer() {
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
while IFS= read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
    *'"method":"initialize"'*)
        answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
        ;;
    *'"method":"session/new"'*)
        answer "{\"sessionId\":\"$session\"}"
        ;;
    *'"method":"session/load"'*)
        session=${line#*'"sessionId":"'}
        session=${session%%\"*}
        text 'what was said before'
        answer '{}'
        ;;
    *'"text":"args"'*)
        text "$*"
        answer '{"stopReason":"end_turn"}'
        ;;
    *'"text":"tool"'*)
        say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"make","kind":"execute","status":"pending","rawInput":{"command":"make"}}'
        printf '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"%s","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}\n' "$session"
        IFS= read -r reply
        case $reply in
        *'"optionId":"yes"'*) status=completed ;;
        *) status=failed ;;
        esac
        say "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\",\"status\":\"$status\"}"
        text "$status"
        answer '{"stopReason":"end_turn"}'
        ;;
    *'"text":"pay '*)
        amount=${line#*'"text":"pay '}
        amount=${amount%%\"*}
        say "{\"sessionUpdate\":\"usage_update\",\"used\":1,\"size\":2,\"cost\":{\"amount\":$amount,\"currency\":\"USD\"}}"
        text paid
        answer '{"stopReason":"end_turn"}'
        ;;
    *'"text":"wait"'*)
        text 'I wait'
        IFS= read -r reply
        answer '{"stopReason":"cancelled"}'
        ;;
    *'"text":"leave"'*)
        sleep 1000 &
        say "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t1\",\"title\":\"sleep\",\"kind\":\"execute\",\"status\":\"completed\",\"rawInput\":{\"pid\":$!}}"
        answer '{"stopReason":"end_turn"}'
        ;;
    *'"text":"late"'*)
        text 'just '
        answer '{"stopReason":"end_turn"}'
        text 'in time'
        ;;
    *'"text":"fall"'*)
        echo 'no way' >&2
        exit 3
        ;;
    *'"method":"session/prompt"'*)
        text "in $$"
        answer '{"stopReason":"end_turn"}'
        ;;
    esac
done
