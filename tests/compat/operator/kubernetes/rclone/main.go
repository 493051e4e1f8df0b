// Command rclone is rclone with the commands that the chart's backup job runs, and with a server
// for S3.
//
// It is a separate module, so that zkgo doesn't depend on rclone. It has the version of the
// image in the chart's values.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	_ "github.com/rclone/rclone/backend/s3"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/copyto"
	_ "github.com/rclone/rclone/cmd/moveto"
	_ "github.com/rclone/rclone/cmd/serve/s3"
)

func main() { cmd.Main() }
