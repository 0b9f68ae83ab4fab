-- Zones of a group, and a StatefulSet of a PhasedRollout, are done when their revision is recorded. Of others it says
-- what Argo CD says by itself.
local function health(obj)
  local status = obj.status or {}
  local replicas = obj.spec.replicas or 1
  if (status.observedGeneration or 0) < (obj.metadata.generation or 0) then
    return answer("Progressing", "the latest spec is not observed yet")
  end
  local ready = status.readyReplicas or 0
  if ready < replicas then
    return answer("Progressing", ready .. " of " .. replicas .. " pods are ready")
  end
  local updated = status.updatedReplicas or 0
  local strategy = obj.spec.updateStrategy or {}
  local annotations = obj.metadata.annotations or {}
  local isZone = (obj.metadata.labels or {})["rollout-group"] ~= nil
  if isZone or annotations["sts.plus/phasedRollout"] ~= nil then
    if replicas == 0 or (updated >= replicas and status.currentRevision == status.updateRevision) then
      return answer("Healthy", "all pods are updated and ready")
    end
    local message = updated .. " of " .. replicas .. " pods are updated"
    if isZone and annotations["grafana.com/rollout-paused"] == "true" then
      return answer("Suspended", "the zone is paused: " .. message)
    end
    return answer("Progressing", message)
  end
  if strategy.type == "OnDelete" then
    return answer("Healthy", ready .. " pods are ready")
  end
  local partition = strategy.rollingUpdate and strategy.rollingUpdate.partition or 0
  if partition > 0 then
    if updated < replicas - partition then
      return answer("Progressing", updated .. " of " .. (replicas - partition) .. " pods are updated")
    end
    return answer("Healthy", "the partition is updated")
  end
  if status.updateRevision ~= status.currentRevision then
    return answer("Progressing", updated .. " pods are updated")
  end
  return answer("Healthy", "all pods are updated and ready")
end
