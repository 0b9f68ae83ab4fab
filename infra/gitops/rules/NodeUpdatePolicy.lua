local function judge(obj)
  local status = obj.status
  if status.frozen ~= nil then
    return answer("Degraded", "frozen: " .. status.frozen.message)
  end
  local nodes = status.nodes or {}
  local message = (nodes.upToDate or 0) .. " of " .. (nodes.total or 0) .. " nodes are up to date"
  return answer(nodes.upToDate == nodes.total and "Healthy" or "Progressing", message)
end
