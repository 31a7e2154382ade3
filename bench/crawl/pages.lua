-- All pages of one host in turn; the number of pages comes as an argument.
local requests, last = {}, 0

function init(arguments)
  for page = 1, tonumber(arguments[1]) - 1 do
    requests[page] = wrk.format("GET", "/page/" .. page)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end
