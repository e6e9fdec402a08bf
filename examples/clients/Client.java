// sockpqd from Java alone: exactly-once put and a worker, through any failover.
//
//   java Client.java HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
//   java Client.java HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
import java.io.*;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

public final class Client {
    private static final int PATIENCE_MS = 10_000; // no answer takes longer, as GETB is told to wait for 5 seconds

    record Answer(String[] words, byte[] body) {
        boolean good() { return words[0].equals("200"); }
    }

    private String[] servers;
    private Socket socket;
    private InputStream input;
    private String session = "";
    private int number;

    /** Executes a command exactly once: under the same number until there is an answer. */
    Answer call(String line, byte[] data) throws InterruptedException {
        number++;
        while (true) {
            if (socket == null) connect();
            try {
                String[] words = ask("REQ " + number + " " + line + "\r\n", data);
                if (!words[0].matches("500|504") && !String.join(" ", words).equals("503 Busy")) {
                    boolean job = words[0].equals("200") && line.startsWith("GETB");
                    return new Answer(words, job ? block(Integer.parseInt(words[5])) : new byte[0]);
                }
            } catch (IOException error) { /* nobody knows whether it was executed: again */ }
            hangUp();
            Thread.sleep(100);
        }
    }

    /** To the leader, and to our session; tries until it works. */
    private void connect() throws InterruptedException {
        boolean said = false;
        for (long begun = System.nanoTime();; Thread.sleep(100)) {
            long best = Long.MAX_VALUE;
            String leader = null;
            for (String server : servers) { // the leader has the smallest number
                try {
                    dial(server);
                    String[] words = ask("INTERCONNECT\r\n", new byte[0]);
                    if (words[0].equals("200") && Long.parseLong(words[2]) < best) {
                        best = Long.parseLong(words[2]);
                        leader = server;
                    }
                } catch (IOException error) { /* it does not answer */ }
                hangUp();
            }
            if (leader == null) {
                if (!said) System.err.println("no server answers at " + String.join(",", servers));
                said = true;
                if (System.nanoTime() - begun >= PATIENCE_MS * 1_000_000L) System.exit(1);
                continue;
            }
            try {
                dial(leader);
                String[] words = ask(("SESSION " + session).strip() + "\r\n", new byte[0]);
                if (words[0].equals("404")) throw new IllegalStateException("the session is lost: nobody knows what was executed");
                if (words[0].equals("200")) {
                    session = words[3];
                    return;
                }
            } catch (IOException error) { /* it has ended meanwhile */ }
            hangUp();
        }
    }

    private void dial(String server) throws IOException {
        int colon = server.lastIndexOf(':');
        socket = new Socket();
        socket.setSoTimeout(PATIENCE_MS);
        socket.connect(new InetSocketAddress(server.substring(0, colon), Integer.parseInt(server.substring(colon + 1))), 2000);
        input = new BufferedInputStream(socket.getInputStream());
    }

    private void hangUp() {
        try (Socket old = socket) {
            socket = null;
        } catch (IOException error) { /* it is closed all the same */ }
    }

    private String[] ask(String line, byte[] data) throws IOException {
        byte[] head = line.getBytes(StandardCharsets.UTF_8), all = java.util.Arrays.copyOf(head, head.length + data.length);
        System.arraycopy(data, 0, all, head.length, data.length);
        socket.getOutputStream().write(all);
        StringBuilder text = new StringBuilder();
        for (int letter; (letter = input.read()) != '\n'; text.append((char) letter)) if (letter < 0) throw new EOFException();
        return text.toString().strip().split(" ");
    }

    private byte[] block(int length) throws IOException {
        byte[] body = input.readNBytes(length);
        if (body.length < length) throw new EOFException();
        return body;
    }

    public static void main(String[] arguments) throws Exception {
        String what = arguments.length < 3 ? "" : arguments[1];
        if (!what.equals("put") && (!what.equals("work") || arguments.length < 4 || !arguments[3].matches("[0-9]+"))) {
            System.err.println("usage: Client.java SERVERS put QUEUE | SERVERS work QUEUE COUNT");
            System.exit(64);
        }
        Client queue = new Client();
        queue.servers = arguments[0].split(",");
        if (arguments[1].equals("put")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String text; (text = lines.readLine()) != null; ) {
                byte[] data = text.getBytes(StandardCharsets.UTF_8);
                Answer answer = queue.call("PUT " + arguments[2] + " 0 " + data.length, data);
                if (!answer.good()) throw new IllegalStateException(String.join(" ", answer.words()));
            }
            return;
        }
        for (int left = Integer.parseInt(arguments[3]); left > 0; ) {
            Answer job = queue.call("GETB " + arguments[2] + " EXPIRE 60 THEN LATER WITHIN 5", new byte[0]);
            if (!job.good() || !queue.call("DONE " + job.words()[3], new byte[0]).good()) continue; // 404: none for 5 seconds
            System.out.write(job.body());
            System.out.println();
            left--;
        }
    }
}
