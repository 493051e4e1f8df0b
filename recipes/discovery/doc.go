// Package discovery is a register of services: programs register where they can be
// reached, others find them and choose one.
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
// It imports recipes/cache, recipes/node, recipes and client. Paths and JSON are those
// of Curator's x-discovery, so that programs in Java register and find the same: the
// field enabled, which Curator writes only on demand, is written only when it is
// false. Curator wants the payload's Java class in "@class"; a payload type that has
// to be read by such a program as its own class needs a field for it.
package discovery
