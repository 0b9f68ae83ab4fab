-- A status says nothing about a spec that its writer has not seen.
local function unseen(obj)
  local seen = (obj.status or {}).observedGeneration
  if seen == nil then
    return answer("Progressing", "the reconciler has not written a status yet")
  end
  if seen < (obj.metadata.generation or 0) then
    return answer("Progressing", "the reconciler has not seen the latest spec yet")
  end
end
local function condition(obj, name)
  for _, one in ipairs(obj.status.conditions or {}) do
    if one.type == name then
      return one
    end
  end
  return { status = "Unknown", reason = "", message = "" }
end
