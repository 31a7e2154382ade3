-- All pages of all hosts: each thread has the pages of one host in turn; their number comes as an argument.
local threads, requests, last = 0, {}, 0

function setup(thread)
  threads = threads + 1
  thread.addr = wrk.lookup("127.0.0." .. threads, wrk.port)[1]
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
