local function judge(obj)
  local message = obj.status.message
  if condition(obj, "Stalled").status == "True" then
    return answer("Degraded", message)
  end
  if condition(obj, "Ready").status == "True" then
    return answer("Healthy", message)
  end
  return answer(obj.status.phase == "Paused" and "Suspended" or "Progressing", message)
end
