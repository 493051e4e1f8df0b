package peers

import (
	"testing"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/discovery"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// load is the payload, in the format of the Java class.
type load struct {
	Class  string `json:"@class"`
	Zone   string `json:"zone"`
	Weight int    `json:"weight"`
}

// TestDiscovery checks that Go finds services in Java, and the other way round.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	zs := zktest.Run(t)
	java := javaPeer(ctx, t, zs)
	d := discovery.New[load](recipes.On(zs.Client(t)), "/services")

	java.expect("ok", "register", "web", "j", "10.0.0.7", "8080", "eu", "3", "DYNAMIC")
	web := d.Watch("web")
	defer web.Close()
	inst := must.Get(discovery.NewProvider(web, discovery.RoundRobin[load]()).Get(ctx))(t)
	if inst.ID != "j" || inst.Address != "10.0.0.7" || *inst.Port != 8080 || *inst.Payload != (load{"Peer$Load", "eu", 3}) || inst.BuildURI(nil) != "http://10.0.0.7:8080/v1" {
		t.Errorf("Go finds %+v with %+v", inst, inst.Payload)
	}
	if text, err := inst.MarshalJSON(); err != nil || string(text) != zs.Get("/services/web/j") {
		t.Errorf("Go would write\n%s, Java has written\n%s", text, zs.Get("/services/web/j"))
	}

	inst.ID, inst.Address, inst.Payload.Zone = "g", "10.0.0.8", "us"
	reg := must.Get(d.Register(inst))(t)
	must.Do(t, reg.Wait(ctx))
	const ofJava, ofGo = "j,http://10.0.0.7:8080/v1,eu,3,DYNAMIC,true", "g,http://10.0.0.8:8080/v1,us,3,DYNAMIC,"
	java.expect(ofGo+"true "+ofJava, "find", "web")
	inst.Disabled = true
	must.Do(t, reg.Update(inst))
	must.Do(t, reg.Wait(ctx))
	java.expect(ofGo+"false "+ofJava, "find", "web")

	java.expect("ok", "unregister", "j")
	for list, err := range web.Changes(ctx) {
		must.Do(t, err)
		if len(list) == 1 && list[0].ID == "g" {
			break
		}
	}
	reg.Close()
	java.expect("none", "find", "web")
}
