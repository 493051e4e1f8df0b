import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A ZooKeeper for tests: zkgo testserver. */
public class TestServer implements AutoCloseable {
    private final Process process;
    private final HttpClient http = HttpClient.newHttpClient();
    public final String connectString, control;

    public TestServer(String... arguments) throws IOException {
        String zkgo = System.getenv().getOrDefault("ZKGO", "zkgo");
        List<String> command = new ArrayList<>(List.of(zkgo, "testserver", "--quiet"));
        command.addAll(List.of(arguments));
        // Its stdin is a pipe that this process holds: it ends when we do.
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        connectString = field(ready, "connectString");
        control = field(ready, "control");
    }

    /** Calls an endpoint of docs/guide/testserver.md and returns its JSON. */
    public String ask(String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control + "/v1" + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new AssertionError(method + " " + path + ": " + answer.body());
        }
        return answer.body();
    }

    /** A field of a JSON object that is a text; a JSON library does it, too. */
    static String field(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        if (!m.find()) {
            throw new AssertionError("no " + name + " in " + json);
        }
        return m.group(1);
    }

    @Override
    public void close() throws Exception {
        process.getOutputStream().close();
        process.waitFor();
    }
}
