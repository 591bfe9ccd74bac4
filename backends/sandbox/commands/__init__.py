"""Look-alikes of Slurm's commands: what they take, print and answer is Slurm 22.05's, as far as it is used."""
