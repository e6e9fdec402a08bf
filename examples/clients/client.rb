# sockpqd from Ruby alone: exactly-once put and a worker, through any failover.
#
#   ruby client.rb HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
#   ruby client.rb HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
require "socket"
require "timeout"

class SockQueue
  PATIENCE = 10 # seconds; no answer takes longer, as GETB is told to wait for 5
  BROKEN = [SystemCallError, IOError, SocketError, Timeout::Error].freeze

  def initialize(servers)
    @servers = servers
    @number = 0
  end

  # Executes a command exactly once: under the same number until there is an answer. Returns its words and a job's body.
  def call(line, data = "")
    @number += 1
    loop do
      connect unless @socket
      begin
        words = ask("REQ #{@number} #{line}\r\n#{data}")
        unless %w[500 504].include?(words[0]) || words == %w[503 Busy]
          return [words, nil] unless words[0] == "200" && line.start_with?("GETB")

          return [words, block(words[5].to_i)]
        end
      rescue *BROKEN
        nil # not executed, or nobody knows: again
      end
      hang_up
      sleep 0.1
    end
  end

  private

  # To the leader, and to our session; tries until it works.
  def connect
    begun = Time.now
    loop do
      leader = @servers.filter_map { |server| (id = number_of(server)) && [id, server] }.min # the smallest number
      begin
        if leader
          dial(leader[1])
          words = ask(["SESSION", @session].compact.join(" ") + "\r\n")
          abort "the session is lost: nobody knows what was executed" if words[0] == "404"
          if words[0] == "200"
            @session = words[3]
            return
          end
        end
      rescue *BROKEN
        nil
      end
      hang_up
      unless leader
        @said ||= warn("no server answers at #{@servers.join(",")}") || true
        exit 1 if Time.now - begun >= PATIENCE
      end
      sleep 0.1
    end
  end

  def number_of(server)
    dial(server)
    words = ask("INTERCONNECT\r\n")
    words[0] == "200" ? words[2].to_i : nil
  rescue *BROKEN
    nil
  ensure
    hang_up
  end

  def dial(server)
    host, _, port = server.rpartition(":")
    @socket = Socket.tcp(host, port.to_i, connect_timeout: 2)
  end

  def hang_up
    @socket&.close
    @socket = nil
  end

  def ask(text)
    Timeout.timeout(PATIENCE) do
      @socket.write(text)
      line = @socket.gets("\n")
      raise IOError, "closed" unless line&.end_with?("\n")

      line.split
    end
  end

  def block(length)
    body = Timeout.timeout(PATIENCE) { @socket.read(length) }
    raise IOError, "closed" unless body&.bytesize == length

    body
  end
end

$stdout.sync = true
servers, what, name, count = ARGV
unless name && (what == "put" || (what == "work" && count&.match?(/\A\d+\z/)))
  warn "usage: client.rb SERVERS put QUEUE | SERVERS work QUEUE COUNT"
  exit 64
end
queue = SockQueue.new(servers.split(","))
if what == "put"
  $stdin.each_line(chomp: true) do |text|
    words, = queue.call("PUT #{name} 0 #{text.bytesize}", text)
    abort words.join(" ") unless words[0] == "200"
  end
else
  left = count.to_i
  while left.positive?
    words, body = queue.call("GETB #{name} EXPIRE 60 THEN LATER WITHIN 5")
    next unless words[0] == "200" # 404: none for 5 seconds
    next unless queue.call("DONE #{words[3]}")[0][0] == "200"

    puts body
    left -= 1
  end
end
