// Package zoocfg parses real-world ZooKeeper configuration files into a plain struct.
// It accepts and rejects the same files as ZooKeeper.
//
// The file is a Java properties file. Parse reads it, the dynamic membership file
// that it may name, and <dataDir>/myid. ParseText does the same for a text in memory.
// Default returns the configuration of a server without a file. Set changes one key
// afterwards, exactly as a line in the file would.
//
// Rules:
//
//   - The package rejects the files that ZooKeeper 3.9.5 rejects, and reads the same values
//     from the files that ZooKeeper accepts. We list deliberate differences with their
//     reasons in the test that compares the two (verdict_test.go).
//   - An error names the file, the line, the key and the expected value.
//   - An unknown key is never an error, because ZooKeeper turns it into a system property.
//     We return a Warning that names the most similar known key.
//   - If one of ZooKeeper's keys has no effect in zkgo, we accept it and list it in
//     Config.Ignored, so that one message can list all such keys.
//   - The package resolves no host names and reads no environment variables.
//
// It imports the standard library, internal/defaults and internal/smallfile.
package zoocfg
