package server

import "github.com/zkgo/zkgo/internal/limits"

import "github.com/zkgo/zkgo/internal/zoocfg"

// limitsFromZooCfg translates the settings that limit the load.
func (c *Config) limitsFromZooCfg(z *zoocfg.Config) {
	c.Auth.EagerACL = z.EnableEagerACLCheck
	c.Limits.LargeRequestMax = z.LargeRequestMax
	if z.LargeRequestAt != zoocfg.Unset {
		c.Limits.LargeRequestAbove = max(z.LargeRequestAt, 1) // every request is longer than 1
	}
	c.Limits.MemoryCeiling = z.MemoryCeiling.Bytes
	if p := z.MemoryCeiling.Percent; p > 0 {
		c.Limits.MemoryCeiling = limits.SystemMemory() / 100 * int64(p)
	}
	r := z.RequestThrottle
	c.Limits.RequestThrottle = RequestThrottle{
		MaxRequests: r.MaxRequests, StallTime: r.StallTime, DropStale: r.DropStale, StaleLatency: r.StaleLatency, OpWait: r.OpWaitTime,
	}
	t := z.ConnThrottle
	if t.Tokens == 0 {
		return
	}
	c.Limits.ConnThrottle = &ConnThrottle{
		Tokens: t.Tokens, FillTime: t.FillTime, FillCount: t.FillCount, FreezeTime: t.FreezeTime,
		DropIncrease: t.DropIncrease, DropDecrease: t.DropDecrease, DecreaseRatio: t.DecreaseRatio, New: 1, Renewed: 1,
	}
	if !t.WeightEnabled {
		return
	}
	// As in ZooKeeper, no session weighs less than a local one, and the bucket is
	// counted in new global sessions. A session weighs as much as a local one if
	// sessions are local.
	global, renewed := max(t.GlobalSession, t.LocalSession), max(t.RenewedSession, t.LocalSession)
	c.Limits.ConnThrottle.Tokens *= global
	c.Limits.ConnThrottle.FillCount *= global
	c.Limits.ConnThrottle.New, c.Limits.ConnThrottle.Renewed = global, renewed
	if z.LocalSessionsEnabled {
		c.Limits.ConnThrottle.New = t.LocalSession
	}
}
