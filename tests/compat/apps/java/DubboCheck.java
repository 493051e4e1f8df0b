import java.util.Map;
import java.util.TreeSet;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

/**
 * Dubbo with ZooKeeper as its registry: DubboCheck ZOOKEEPER provide NAME PORT serves until it is killed; DubboCheck ZOOKEEPER
 * consume calls again and again, and prints "SEES" with the names that answer 20 calls.
 */
public class DubboCheck {
    public interface Greeter {
        String greet();
    }

    static DubboBootstrap bootstrap(String application, String zookeeper) {
        ApplicationConfig app = new ApplicationConfig(application);
        app.setQosEnable(false);
        RegistryConfig registry = new RegistryConfig("zookeeper://" + zookeeper.replaceFirst(",", "?backup="));
        registry.setTimeout(30000);
        registry.setParameters(Map.of("session", "8000"));
        return DubboBootstrap.getInstance().application(app).registry(registry);
    }

    public static void main(String[] a) throws Exception {
        if (a[1].equals("provide")) {
            ServiceConfig<Greeter> service = new ServiceConfig<>();
            service.setInterface(Greeter.class);
            service.setRef(() -> a[2]);
            ProtocolConfig protocol = new ProtocolConfig("dubbo", Integer.parseInt(a[3]));
            bootstrap("greeter", a[0]).protocol(protocol).service(service).start().await();
            return;
        }
        ReferenceConfig<Greeter> reference = new ReferenceConfig<>();
        reference.setInterface(Greeter.class);
        reference.setCheck(false);
        reference.setRetries(0);
        reference.setTimeout(20000);
        reference.setLoadbalance("roundrobin");
        bootstrap("guest", a[0]).reference(reference).start();
        while (true) {
            TreeSet<String> names = new TreeSet<>();
            for (int i = 0; i < 20; i++) {
                try {
                    names.add(reference.get().greet());
                } catch (RuntimeException e) { // no provider, or one that died
                    names.add(e.getClass().getSimpleName());
                }
            }
            System.out.println("SEES " + String.join(" ", names));
            Thread.sleep(250);
        }
    }
}
