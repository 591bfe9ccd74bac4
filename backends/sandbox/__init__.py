"""An embedded cluster on loopback: a real SSH and SFTP server and a small look-alike of Slurm."""
