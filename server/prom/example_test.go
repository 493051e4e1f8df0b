package prom_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/prom"
)

// The metrics of a server in the program's own registry, with a label.
func ExampleCollector() {
	srv, err := server.Start(context.Background(), server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	registry := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(prometheus.Labels{"server": "locks"}, registry).MustRegister(prom.Collector(srv.Metrics()))
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "znode_count" {
			m := f.GetMetric()[0]
			fmt.Println(m.GetLabel()[0].GetName(), m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
		}
	}
	// Output: server locks 5
}

// A port for Prometheus.
func ExampleHandler() {
	srv, err := server.Start(context.Background(), server.Config{
		Memory: true, Metrics: &server.Metrics{Addr: "127.0.0.1:0", Handler: prom.Handler},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	fmt.Println(srv.MetricsAddr() != "")
	// Output: true
}
