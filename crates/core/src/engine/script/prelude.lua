-- What scripts see: the globals, sealed so that no script leaves anything behind for the next. Runs once for each
-- interpreter, with a table of functions of the engine as its argument; what it puts into that table (`begin`, `run`) is
-- what the engine calls. Invariants: a script reaches no table that another script reaches and can change; what must not
-- be caught (the end of its time, or of its memory inside the engine) passes through pcall, xpcall and coroutines.

local host = ...

local collectgarbage, error, getmetatable, gcinfo, loadstring = collectgarbage, error, getmetatable, gcinfo, loadstring
local next, pairs, pcall, rawget, rawset, select, setfenv = next, pairs, pcall, rawget, rawset, select, setfenv
local setmetatable, tonumber, tostring, type, unpack, xpcall = setmetatable, tonumber, tostring, type, unpack, xpcall
local string, table, math, coroutine = string, table, math, coroutine
local byte, concat, null = string.byte, table.concat, host.null
local PATTERN_MAX, VALUES_MAX = host.pattern_max, host.values_max

local READONLY = "Attempt to modify a readonly table"

-- The metatable that scripts are shown of everything sealed. It is sealed itself.
local SEAL = {}
local function refuse() error(READONLY, 2) end
setmetatable(SEAL, { __newindex = refuse, __metatable = SEAL })
local function sealed(value) return type(value) == "table" and getmetatable(value) == SEAL end

-- What stands behind a sealed table.
local behind = setmetatable({}, { __mode = "k" })
local function seal(real)
  local front = setmetatable({}, { __index = real, __newindex = refuse, __metatable = SEAL })
  behind[front] = real
  return front
end

local function copy(real, names)
  local made = {}
  for name in names:gmatch("%S+") do made[name] = real[name] end
  return made
end

-- Errors --------------------------------------------------------------------------------------------------------------

-- An error as a script may see it: those of the engine become their text.
local function caught(err)
  if type(err) == "userdata" and err ~= null then
    local text = host.told(err)
    if text == nil then error(err, 0) end
    return text
  elseif type(err) == "table" then
    local text = rawget(err, "err")
    if type(text) == "string" then return text end
  end
  return err
end

local function settle(ok, ...)
  if ok then return true, ... end
  return false, caught((...))
end

local globals = {}

function globals.pcall(...) return settle(pcall(...)) end

function globals.xpcall(work, handler)
  local fatal
  local function finish(...)
    if fatal ~= nil then error(fatal, 0) end
    return ...
  end
  return finish(xpcall(work, function(err)
    if type(err) == "userdata" and err ~= null then
      local text = host.told(err)
      if text == nil then
        fatal = err
        return err
      end
      err = { err = text }
    end
    return handler(err)
  end))
end

-- Tables --------------------------------------------------------------------------------------------------------------

for _, name in pairs({ "assert", "error", "gcinfo", "getmetatable", "ipairs", "rawequal", "select", "tonumber",
                       "tostring", "type", "_VERSION" }) do
  globals[name] = host.base[name]
end

function globals.next(from, key)
  if from == nil then return next(from, key) end
  return next(behind[from] or from, key)
end

function globals.pairs(from)
  if type(from) ~= "table" then
    local kind = from == nil and "no value" or type(from)
    error("bad argument #1 to 'pairs' (table expected, got " .. kind .. ")", 2)
  end
  return pairs(behind[from] or from)
end

function globals.rawget(from, key)
  if from == nil then return rawget(from, key) end
  return rawget(behind[from] or from, key)
end

function globals.rawset(into, key, value)
  if sealed(into) then error(READONLY, 0) end
  return rawset(into, key, value)
end

function globals.setmetatable(of, metatable)
  if sealed(of) then error(READONLY, 0) end
  return setmetatable(of, metatable)
end

function globals.unpack(from, first, last)
  first = first == nil and 1 or tonumber(first) or first
  if last == nil and type(from) == "table" then last = #from end
  last = tonumber(last) or last
  if type(first) == "number" and type(last) == "number" then
    if last - first >= VALUES_MAX or first ~= first or last ~= last then error("too many results to unpack", 2) end
    if first > last then return end
    if first < -2147483648 or last > 2147483647 then error("too many results to unpack", 2) end
  end
  return unpack(from, first, last)
end

local function changing(change)
  return function(into, ...)
    if sealed(into) then error(READONLY, 0) end
    return change(into, ...)
  end
end

local tables = copy(table, "concat foreach foreachi getn maxn")
for _, name in pairs({ "insert", "remove", "setn", "sort" }) do tables[name] = changing(table[name]) end

-- Collecting is all that a script may ask for: what it would set, the next one would find.
function globals.collectgarbage(option)
  if option == "count" then return collectgarbage("count") end
  if option == nil or option == "collect" then return collectgarbage("collect") end
  return 0
end

-- Code ----------------------------------------------------------------------------------------------------------------

local environment

-- Only source: bytecode made by hand could do anything.
function globals.loadstring(source, name)
  if type(source) == "string" and byte(source) == 27 then return nil, "binary chunks are not loaded" end
  local made, problem = loadstring(source, name == nil and source or name)
  if made then setfenv(made, environment) end
  return made, problem
end

function globals.load(reader, name)
  local pieces = {}
  while true do
    local piece = reader()
    if piece == nil or piece == "" then break end
    if type(piece) ~= "string" then return nil, "reader function must return a string" end
    pieces[#pieces + 1] = piece
  end
  return globals.loadstring(concat(pieces), name == nil and "=(load)" or name)
end

local coroutines = copy(coroutine, "create running status wrap yield")
function coroutines.resume(...) return settle(coroutine.resume(...)) end

-- Strings -------------------------------------------------------------------------------------------------------------

local strings = copy(string, "byte char dump format len lower reverse sub upper")

local function text_wanted(value, at, name)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    if kind == "nil" then kind = "no value" end
    error("bad argument #" .. at .. " to '" .. name .. "' (string expected, got " .. kind .. ")", 3)
  end
end

-- Matching takes stack for each piece of a pattern.
local function matching(name)
  local match = string[name]
  return function(text, pattern, ...)
    text_wanted(text, 1, name)
    text_wanted(pattern, 2, name)
    if type(pattern) == "string" and #pattern > PATTERN_MAX then error("pattern too long", 2) end
    return match(text, pattern, ...)
  end
end
strings.find, strings.match = matching("find"), matching("match")
strings.gmatch, strings.gsub = matching("gmatch"), matching("gsub")
strings.gfind, strings.rep = strings.gmatch, host.rep

-- Libraries -----------------------------------------------------------------------------------------------------------

local numbers = {}
for name, value in pairs(math) do numbers[name] = value end
numbers.random, numbers.randomseed = host.random, host.randomseed

globals.redis, globals.bit, globals.cjson = seal(host.redis), seal(host.bit), seal(host.cjson)
globals.string, globals.table, globals.math = seal(strings), seal(tables), seal(numbers)
globals.coroutine, globals.os = seal(coroutines), seal(host.os)

local of_strings = getmetatable("")
of_strings.__index, of_strings.__metatable = strings, SEAL

-- Running -------------------------------------------------------------------------------------------------------------

setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})
local of_index = { __index = globals }

-- A fresh environment.
function host.begin(keys, arguments)
  local index = setmetatable({ KEYS = keys, ARGV = arguments }, of_index)
  environment = setmetatable({}, { __index = index, __newindex = refuse, __metatable = SEAL })
  index._G = environment
  behind[environment] = globals
  return environment
end

function host.run(script) return xpcall(script, host.failed) end
