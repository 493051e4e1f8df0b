//go:build race

package gozk_test

const raceDetector = true
