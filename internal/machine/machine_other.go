//go:build !unix

package machine

// writable checks nothing: a problem shows when the server starts.
func writable(string, bool) error { return nil }

// maxFDs is unknown here.
func maxFDs() int64 { return -1 }
