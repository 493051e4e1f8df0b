// Package zoocfg reads a ZooKeeper configuration file as it is found in the
// wild into a plain struct, and gives the verdict ZooKeeper itself would give.
//
// The file is a Java properties file. Parse reads it, the dynamic membership
// file it may name and <dataDir>/myid; ParseText does the same for a text in
// memory; Default is what a server runs with when there is no file at all; Set
// changes one key afterwards exactly as a line in the file would.
//
// Rules that hold throughout:
//
//   - A file ZooKeeper 3.9.5 refuses is refused, and a file it accepts is
//     accepted with the same values. The differences are deliberate and listed
//     with their reasons in the test that compares the two (verdict_test.go).
//   - An error names file, line, key and what was expected.
//   - A key nobody knows is never an error, because ZooKeeper turns it into a
//     system property: it becomes a Warning with the nearest known key.
//   - A key that is ZooKeeper's but has no meaning here is accepted and listed
//     in Config.Ignored, so that one line can say what had no effect.
//   - Nothing is resolved: host names stay names, no environment is read.
//
// It imports the standard library only.
package zoocfg
