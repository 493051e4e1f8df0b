// Package prom serves a server's metrics to Prometheus, under ZooKeeper's names. Only a program
// that imports it links Prometheus' client library.
//
//	cfg.Metrics = &server.Metrics{Addr: "127.0.0.1:7000", Handler: prom.Handler}
//
// It imports server for the interface of the metrics, and internal/ops/metrics.
package prom

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/server"
)

// Handler serves the metrics of a server at /metrics. With process, it adds the metrics of
// the Go runtime and the process. It is for [server.Metrics].
func Handler(m server.MetricsSource, process bool) http.Handler { return metrics.Handler(m, process) }

// Collector returns the metrics of a server for a registry of the program:
//
//	registry.MustRegister(prom.Collector(srv.Metrics()))
//
// The names have no prefix. prometheus.WrapRegistererWith adds labels, which several servers
// in one registry need.
func Collector(m server.MetricsSource) prometheus.Collector { return metrics.Collector(m) }
