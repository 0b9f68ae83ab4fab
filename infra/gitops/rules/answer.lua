local function answer(status, message)
  return { status = status, message = message or "" }
end
