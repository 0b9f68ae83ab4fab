-- A gate that holds nothing now is healthy; one that observes never holds anything.
local function judge(obj)
  local valid = condition(obj, "Valid")
  if valid.status == "False" then
    -- In the first apply the gate may come before its zones.
    return answer(valid.reason == "GroupNotFound" and "Progressing" or "Degraded", valid.message)
  end
  local open = condition(obj, "Open")
  if open.status == "True" or obj.spec.mode == "Observe" then
    return answer("Healthy", open.message)
  end
  local failed = open.reason == "GateFailed" or open.reason == "GateInvalid"
  return answer(failed and "Degraded" or "Progressing", open.message)
end
