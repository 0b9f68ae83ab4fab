-- It needs Zonewise's definition of the kind: the original's has no status.
local function judge(obj)
  local protecting = condition(obj, "Protecting")
  if protecting.status == "True" then
    return answer("Healthy", protecting.message)
  end
  -- In the first apply the budget may come before its zones. Unknown: that a webhook guards it was not seen yet.
  local early_days = protecting.status == "Unknown" or protecting.reason == "SelectsNothing"
  return answer(early_days and "Progressing" or "Degraded", protecting.message)
end
