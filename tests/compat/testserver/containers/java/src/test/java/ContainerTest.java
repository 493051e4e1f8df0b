import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.time.Duration;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;
import org.testcontainers.utility.DockerImageName;

@Testcontainers
class ContainerTest {
    @Container
    static final GenericContainer<?> zkgo = new GenericContainer<>(DockerImageName.parse("zkgo/zkgo:0.1.0"))
            .withCommand("testserver", "--stay", "--host", "0.0.0.0", "--port", "2181", "--control-port", "8080")
            .withExposedPorts(2181, 8080)
            .waitingFor(Wait.forHttp("/v1").forPort(8080).withStartupTimeout(Duration.ofSeconds(30)));

    @Test
    void curatorConnects() throws Exception {
        String servers = zkgo.getHost() + ":" + zkgo.getMappedPort(2181);
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(servers, new ExponentialBackoffRetry(100, 3))) {
            client.start();
            client.create().forPath("/app");
            assertNotNull(client.checkExists().forPath("/app"));
        }
    }
}
