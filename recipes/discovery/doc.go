// Package discovery is a service registry: programs register their addresses, and other
// programs find them and choose one.
//
//	d := discovery.New[Payload](recipes.On(c), "/services")
//	reg, err := d.Register(discovery.Instance[Payload]{Name: "web", Address: "10.0.0.7", Port: discovery.Port(8080)})
//	…
//	web := d.Watch("web")
//	defer web.Close()
//	p := discovery.NewProvider(web, discovery.RoundRobin[Payload]())
//	inst, err := p.Get(ctx)
//
// # Rules
//
// The package imports recipes/cache, recipes/node, recipes and client. It uses the paths
// and the JSON of Curator's x-discovery, so that Java programs can register and find the
// same instances. We write the field enabled, which Curator writes only on demand, only
// when it is false. Curator requires the payload's Java class in "@class", so a payload
// that a Java program should decode needs a field for it.
package discovery
