"""`pycollective bench`: how fast the collectives are, in the columns of nccl-tests.

`plan` is what is to be measured, `patterns` the data with its exact results, `measure` what each
rank does, `launch` how ranks are started on this machine, `report` the table. Bandwidths are as
nccl-tests defines them: algbw is size over time; busbw is algbw times what a ring would send per
byte, so that figures of different rank counts can be compared.
"""
