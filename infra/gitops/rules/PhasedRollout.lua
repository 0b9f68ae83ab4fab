local function judge(obj)
  local phase = obj.status.phase
  local updated = condition(obj, "Updated")
  if phase == "ErrorCannotManage" or phase == "Stalled" then
    return answer("Degraded", updated.message)
  end
  if phase == "Suspended" then
    return answer("Suspended", updated.message)
  end
  return answer(updated.status == "True" and "Healthy" or "Progressing", updated.message)
end
