-- The pages of a host in turn; the number of pages comes as an argument. With ALL_HOSTS each thread has a host of its own,
-- otherwise all have the first.
local threads, requests, last = 0, {}, 0

function setup(thread)
  threads = threads + 1
  if os.getenv("ALL_HOSTS") then
    thread.addr = wrk.lookup("127.0.0." .. threads, wrk.port)[1]
  end
end

function init(arguments)
  for page = 1, tonumber(arguments[1]) - 1 do
    requests[page] = wrk.format("GET", "/page/" .. page)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end
