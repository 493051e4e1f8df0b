// Package defaults contains the default values of settings. A zoo.cfg, a program that embeds the
// server, and the Raft layer share them. We use ZooKeeper's value if ZooKeeper has the setting.
//
// May import: the standard library only.
package defaults

import "time"

// Times.
const (
	TickTime = 2 * time.Second
	// FileTickTime is the tickTime if a zoo.cfg doesn't set it. We use ZooKeeper's default,
	// so that a file has the same meaning here. TickTime is the value in ZooKeeper's sample
	// file.
	FileTickTime       = 3 * time.Second
	MinSessionTicks    = 2
	MaxSessionTicks    = 20
	InitLimit          = 10 // ticks
	SyncLimit          = 5  // ticks
	SessionlessTimeout = 10 * time.Second
)

// Snapshots.
const (
	SnapCount  = 100_000
	SnapBytes  = 4 << 30
	SnapRetain = 3
)

// Clients.
const (
	MaxClientCnxns    = 60
	ListenBacklog     = -1 // the system's
	JuteMaxBuffer     = 0xfffff
	GlobalOutstanding = 1000
	LargeRequestMax   = 100 << 20
	DigestAlg         = "SHA1"
)

// Containers.
const (
	ContainerInterval  = time.Minute
	ContainerMaxPerMin = 10_000
)

// BindTries is how often a server tries to bind a port.
const BindTries = 3
