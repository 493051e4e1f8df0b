// Package audit writes ZooKeeper's audit log: who changed what, when and with
// which result, one line for each change, with ZooKeeper's fields in its order.
//
// It imports the standard library and proto. A [Log] takes records without ever
// waiting for the disk, since the goroutine that applies the log of transactions
// hands them in, and a goroutine of its own writes them in that order. Nothing
// is dropped to keep up: whoever reads requests asks [Log.Wait] first. What
// clients can put into a field cannot end the field or the line.
package audit
