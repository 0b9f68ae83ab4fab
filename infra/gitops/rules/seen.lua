local function health(obj)
  return unseen(obj) or judge(obj)
end
